/* superpoint.c - the network, layer by layer. */
#include "models/superpoint.h"

static theo_epilogue after(const theo_superpoint_conv *conv, bool pool) {
    theo_epilogue e = theo_epilogue_none();
    e.act = THEO_ACT_RELU;
    e.scale = conv->scale;
    e.shift = conv->shift;
    e.pool2 = pool;
    return e;
}

static theo_tensor conv3x3(theo_plan *p, const char *name, theo_tensor x, const theo_superpoint_conv *conv, bool pool) {
    return theo_plan_conv(p, name, x, conv->packed, 1, THEO_PAD_ZERO, after(conv, pool));
}

static theo_tensor conv1x1(theo_plan *p, const char *name, theo_tensor x, const theo_superpoint_conv *conv) {
    return theo_plan_linear(p, name, x, conv->packed, theo_epilogue_none());
}

theo_superpoint_net theo_superpoint_record(theo_plan *p, const theo_superpoint *n, int h, int w, bool detector, bool descriptor) {
    const theo_tensor none = {.id = -1};
    theo_superpoint_net net = {.logits = none, .scores = none, .raw = none, .descriptors = none};
    net.plane = theo_plan_input(p, "plane", h, w, 1);

    /* conv1a makes 64 planes of the full size: they are never stored. */
    theo_tensor x = theo_plan_conv_conv(p, "conv1a+conv1b+pool", net.plane, n->conv1a.packed, after(&n->conv1a, false),
                                        n->conv1b.packed, after(&n->conv1b, true));
    x = conv3x3(p, "conv2a", x, &n->conv2a, false);
    x = conv3x3(p, "conv2b+pool", x, &n->conv2b, true);
    x = conv3x3(p, "conv3a", x, &n->conv3a, false);
    x = conv3x3(p, "conv3b+pool", x, &n->conv3b, true);
    x = conv3x3(p, "conv4a", x, &n->conv4a, false);
    theo_tensor f = conv3x3(p, "conv4b", x, &n->conv4b, false);

    theo_tensor pa;
    if (descriptor) {
        theo_tensor heads = conv3x3(p, "convPa+convDa", f, &n->heads, false);
        pa = theo_plan_channels(p, heads, 0, n->convPa.out);
        net.raw = conv1x1(p, "convDb", theo_plan_channels(p, heads, n->convPa.out, n->convDb.in), &n->convDb);
        net.descriptors = theo_plan_l2_norm(p, "descriptors", net.raw);
        theo_plan_output(p, net.raw);
        theo_plan_output(p, net.descriptors);
    } else {
        pa = conv3x3(p, "convPa", f, &n->convPa, false);
    }
    if (detector) {
        net.logits = conv1x1(p, "convPb", pa, &n->convPb);
        net.scores = theo_plan_cell_softmax(p, "scores", net.logits);
        theo_plan_output(p, net.logits);
        theo_plan_output(p, net.scores);
    }
    return net;
}
