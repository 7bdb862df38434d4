/* The C level of the kernels against values worked out by hand: the other levels are proved against it by check_kernels. */
#include "kernels/kernels.h"
#include "t.h"

static const theo_kernels *k;

/* Input 1 .. 9 in 3x3, a kernel that picks one tap: what each output sees is its neighbour there. */
static void convolution(void) {
    static const float in[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const float bias[1] = {-3}, scale[1] = {2}, shift[1] = {10};
    float weight[9] = {0}, packed[9 * 16], out[25];
    CHECK(theo_conv3x3_packed_floats(1, 1) == 9 * 16);
    weight[2] = 1.0f; /* up and to the right */
    theo_conv3x3_pack(1, 1, weight, packed);
    theo_conv3x3 conv = {.in = in,
                         .in_h = 3,
                         .in_w = 3,
                         .in_c = 1,
                         .in_row = 3,
                         .in_pixel = 1,
                         .weight = packed,
                         .out_c = 1,
                         .stride = 1,
                         .y0 = -1,
                         .y1 = 4,
                         .x0 = -1,
                         .x1 = 4,
                         .out = out,
                         .out_row = 5,
                         .out_pixel = 1};
    k->conv3x3(&conv);
    static const float zeros[25] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 25; i++)
        CHECK_NEAR(out[i], zeros[i], 0.0);

    conv.padding = THEO_PAD_REPLICATE;
    conv.epilogue = (theo_channel_epilogue){bias, THEO_ACT_RELU, scale, shift};
    k->conv3x3(&conv);
    static const float edge[9] = {2, 3, 3, 2, 3, 3, 5, 6, 6};
    for (int i = 0; i < 9; i++)
        CHECK_NEAR(out[(i / 3 + 1) * 5 + i % 3 + 1], 10 + 2 * fmaxf(edge[i] - 3, 0), 0.0);
    CHECK_NEAR(out[0], 0, 0.0); /* outside stays zero, whatever bias and shift are */

    conv.stride = 2; /* 3x3 becomes 2x2 */
    conv.epilogue = (theo_channel_epilogue){0};
    k->conv3x3(&conv);
    CHECK_NEAR(out[6], 2, 0.0);
    CHECK_NEAR(out[7], 3, 0.0);
    CHECK_NEAR(out[11], 5, 0.0);
    CHECK_NEAR(out[12], 6, 0.0);
    CHECK_NEAR(out[8], 0, 0.0);
}

static void resizing(void) {
    static const float in[2] = {0, 12};
    float out[4];
    theo_resize r = {.in = in,
                     .in_h = 1,
                     .in_w = 2,
                     .channels = 1,
                     .in_row = 2,
                     .in_pixel = 1,
                     .out = out,
                     .out_h = 1,
                     .out_w = 4,
                     .out_row = 4,
                     .out_pixel = 1,
                     .y1 = 1,
                     .x1 = 4};
    k->resize_bilinear(&r);
    static const float centres[4] = {0, 3, 9, 12}, corners[4] = {0, 4, 8, 12};
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(out[i], centres[i], 1e-6);
    r.align_corners = true;
    k->resize_bilinear(&r);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(out[i], corners[i], 1e-5);
}

/* One logit stands out in each place in turn: that pixel of the 8x8 cell lights up; the last one darkens all. */
static void cells(void) {
    float logits[65 * 2], scores[8 * 16];
    for (int hot = 0; hot < 65; hot++) {
        for (int i = 0; i < 65; i++)
            logits[i] = logits[65 + i] = 3.0f;
        logits[65 + hot] = 3.0f + 5.0f;
        k->cell_softmax(logits, 65, 2, scores, 16);
        double rest = 1.0 / (64.0 + exp(5.0));
        for (int y = 0; y < 8; y++) {
            for (int x = 0; x < 8; x++) {
                CHECK_NEAR(scores[y * 16 + x], 1.0 / 65.0, 1e-8);
                CHECK_NEAR(scores[y * 16 + 8 + x], y * 8 + x == hot ? exp(5.0) * rest : rest, 1e-7);
            }
        }
    }
}

static void rows(void) {
    static const float top[6] = {1, 9, 2, 4, 7, 7}, bottom[6] = {3, -1, 0, 5, 8, 8}; /* 3 pixels of 2 channels */
    float pooled[2], unit[2], flipped[6];
    k->max_pool2_row(top, bottom, 2, 1, 2, pooled, 2);
    CHECK_NEAR(pooled[0], 3, 0.0);
    CHECK_NEAR(pooled[1], 9, 0.0);

    static const float side[2] = {3, -4}, none[2] = {0, 0}, dust[2] = {3e-14f, 0};
    k->l2_norm_rows(side, 2, unit, 2, 1, 2);
    CHECK_NEAR(unit[0], 0.6, 1e-7);
    CHECK_NEAR(unit[1], -0.8, 1e-7);
    k->l2_norm_rows(none, 2, unit, 2, 1, 2);
    CHECK_NEAR(unit[0], 0, 0.0);
    k->l2_norm_rows(dust, 2, unit, 2, 1, 2);
    CHECK_NEAR(unit[0], 0.03, 1e-8);

    k->transpose(top, 3, 2, 3, flipped, 2);
    static const float want[6] = {1, 4, 9, 7, 2, 7};
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(flipped[i], want[i], 0.0);

    static const float scores[5] = {2, 7, NAN, 7, 5};
    theo_top2 best = {-INFINITY, -INFINITY, -1};
    k->top2_row(scores, 1, 10, &best);
    CHECK(best.index == 10 && best.best == 2.0f && best.second == -INFINITY);
    k->top2_row(scores + 1, 4, 11, &best);
    CHECK(best.index == 11 && best.best == 7.0f && best.second == 7.0f);
}

int main(void) {
    k = theo_kernels_for(THEO_CPU_C);
    CHECK(k->level == THEO_CPU_C);
    convolution();
    resizing();
    cells();
    rows();
    return t_done("reference");
}
