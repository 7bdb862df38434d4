/* pair_options.c - options of theo_reconstruct, and where a photo lies on the grid by them. */
#include "api/pair.h"
#include "base/take_options.h"
#include <math.h>

void theo_pair_options_init(theo_pair_options *o) {
    *o = (theo_pair_options){.size = sizeof *o, .preprocess = THEO_PAIR_PAD, .pose = THEO_POSE_NONE, .conf_pct = 50};
}

static theo_status wrong(theo_error *err, const char *field, double value, const char *allowed) {
    return theo_fail(err, THEO_ARGUMENT, NULL, field, "%g is out of range: allowed is %s", value, allowed);
}

static theo_status check_camera(const theo_intrinsics *c, theo_error *err) {
    if (c->fx == 0)
        return THEO_OK;
    if (!(c->fx > 0) || !(c->fy > 0) || !isfinite(c->fx) || !isfinite(c->fy) || !isfinite(c->cx) || !isfinite(c->cy))
        return theo_fail(err, THEO_ARGUMENT, NULL, "intrinsics",
                         "fx %g, fy %g, cx %g, cy %g: focal lengths are above 0, all are finite", c->fx, c->fy, c->cx, c->cy);
    return THEO_OK;
}

static theo_status check(const theo_pair_options *o, theo_error *err) {
    if (o->preprocess < THEO_PAIR_PAD || o->preprocess > THEO_PAIR_NATIVE)
        return wrong(err, "preprocess", o->preprocess, "0 (pad) to 2 (native)");
    if (o->square_ok && o->preprocess != THEO_PAIR_NATIVE)
        return theo_fail(err, THEO_ARGUMENT, NULL, "square_ok", "has no effect with the preprocessing pad or crop");
    if (o->long_side &&
        (o->long_side < THEO_DUST3R_PATCH || o->long_side > THEO_PAIR_MAX_SIDE || o->long_side % THEO_DUST3R_PATCH))
        return wrong(err, "long_side", o->long_side, "0 (what the network was trained with), or a multiple of 16 up to 4096");
    if (o->pose < THEO_POSE_NONE || o->pose > THEO_POSE_PAIRVIEWER)
        return wrong(err, "pose", o->pose, "0 (none) to 2 (pairviewer)");
    if (!(o->conf_pct >= 0 && o->conf_pct <= 100))
        return wrong(err, "conf_pct", o->conf_pct, "0 to 100");
    if (o->swapped & ~(unsigned)(THEO_VIEW_1 | THEO_VIEW_2))
        return wrong(err, "swapped", o->swapped, "0 to 3 (THEO_VIEW_1, THEO_VIEW_2)");
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        THEO_TRY(check_camera(&o->intrinsics[v], err));
    return THEO_OK;
}

theo_status theo_pair_options_take(theo_pair_options *out, const theo_pair_options *given, theo_error *err) {
    theo_pair_options_init(out);
    THEO_TRY(theo_options_take(out, sizeof *out, given, "theo_pair_options", err));
    return check(out, err);
}

theo_status theo_pair_options_of(theo_pair_options *out, const theo_pair_options *given, const theo_model *model,
                                 theo_error *err) {
    THEO_TRY(theo_pair_options_take(out, given, err));
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        if (out->intrinsics[v].fx != 0 && out->pose == THEO_POSE_NONE)
            return theo_fail(err, THEO_ARGUMENT, NULL, "intrinsics", "have no effect without a pose");
    if (model->kind->task != THEO_TASK_PAIR)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, model->info.name, "is no model for pairs (%s)", model->info.kind);
    if (!out->long_side)
        out->long_side = model->dust3r->config.image_size;
    return THEO_OK;
}

theo_status theo_pair_frame_of(theo_dust3r_frame *frame, const theo_image *image, const char *name, const theo_pair_options *o,
                               theo_error *err) {
    static const theo_dust3r_fit fits[] = {
        [THEO_PAIR_PAD] = THEO_DUST3R_PAD, [THEO_PAIR_CROP] = THEO_DUST3R_CROP, [THEO_PAIR_NATIVE] = THEO_DUST3R_NATIVE};
    const theo_dust3r_frame_options options = {
        .fit = fits[o->preprocess], .size = o->long_side, .patch = THEO_DUST3R_PATCH, .square_ok = o->square_ok, .name = name};
    return theo_dust3r_frame_of(frame, image->width, image->height, &options, err);
}

/* ---------------------------------------------------------------- records */

theo_pair_record theo_pair_record_of(const theo_dust3r_frame *f) {
    static const theo_pair_preprocess words[] = {
        [THEO_DUST3R_PAD] = THEO_PAIR_PAD, [THEO_DUST3R_CROP] = THEO_PAIR_CROP, [THEO_DUST3R_NATIVE] = THEO_PAIR_NATIVE};
    const theo_dust3r_map x = theo_dust3r_frame_map(f, 0), y = theo_dust3r_frame_map(f, 1);
    return (theo_pair_record){
        .preprocess = words[f->fit],
        .image_width = f->width,
        .image_height = f->height,
        .width = f->net_width,
        .height = f->net_height,
        .offset_x = x.offset,
        .offset_y = y.offset,
        .scale_x = x.scale,
        .scale_y = y.scale,
        .square = f->square,
    };
}

void theo_pair_to_grid(const theo_pair_record *r, const double *xy, int count, double *out) {
    for (int i = 0; i < count; i++) {
        out[2 * i] = (xy[2 * i] + r->offset_x) * r->scale_x;
        out[2 * i + 1] = (xy[2 * i + 1] + r->offset_y) * r->scale_y;
    }
}

void theo_pair_to_photo(const theo_pair_record *r, const double *xy, int count, double *out) {
    for (int i = 0; i < count; i++) {
        out[2 * i] = xy[2 * i] / r->scale_x - r->offset_x;
        out[2 * i + 1] = xy[2 * i + 1] / r->scale_y - r->offset_y;
    }
}

theo_intrinsics theo_pair_intrinsics_to_grid(const theo_pair_record *r, theo_intrinsics photo) {
    return (theo_intrinsics){photo.fx * r->scale_x, photo.fy * r->scale_y, (photo.cx + r->offset_x) * r->scale_x,
                             (photo.cy + r->offset_y) * r->scale_y};
}

theo_intrinsics theo_pair_intrinsics_to_photo(const theo_pair_record *r, theo_intrinsics grid) {
    return (theo_intrinsics){grid.fx / r->scale_x, grid.fy / r->scale_y, grid.cx / r->scale_x - r->offset_x,
                             grid.cy / r->scale_y - r->offset_y};
}
