/* theo verify: the network's outputs against those of a reference file. */
#include "command.h"
#include "common.h"
#include "compare.h"
#include "dump.h"
#include "interrupt.h"
#include "message.h"
#include "outputs.h"
#include "verify_input.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec verify_options[] = {
    {"pcc", 0, OPTION_NUMBER, "C", -1, 1, "as the reference says", "gate: the correlation is at least C"},
    {"max-rel", 0, OPTION_NUMBER, "R", 0, 1e6, "as the reference says, or 0.001",
     "gate: the largest error is at most R times the root mean square"},
    {"gray", 0, OPTION_CHOICE, "red|rgb601|luma", 0, 0, "as the reference says", "how a colour photo becomes gray"},
    {"size", 0, OPTION_SIZE, "HxW|native|long:N", 0, 0, "as the reference says", "size of the network's input"},
    {"preprocess", 0, OPTION_CHOICE, "pad|crop|native", 0, 0, "as the reference says",
     "how a photo of a pair gets onto the network's grid"},
    {"square-ok", 0, OPTION_FLAG, NULL, 0, 0, NULL, "with native: a square photo stays one"},
    {"fit", 0, OPTION_CHOICE, "native|pad|stretch", 0, 0, "as the reference says", "what a network for depth sees of a photo"},
    {"tokens", 0, OPTION_COUNT, "N", 16, 16384, "as the reference says", "patches that it cuts the photo into"},
    {"resolution-level", 0, OPTION_NUMBER, "L", 0, 9, NULL, "the same, from the model's fewest (0) to its most (9)"},
    {"bn-eps", 0, OPTION_NUMBER, "E", 1e-12, 1, "by the kind of file", "epsilon of the batch norm"},
    {"orientation", 0, OPTION_CHOICE, "ignore|apply", 0, 0, "as the reference says",
     "what to do about the EXIF orientation of the photo"},
    {"allow-truncated", 0, OPTION_FLAG, NULL, 0, 0, NULL, "decode what there is of a JPEG that ends early"},
    {"max-pixels", 0, OPTION_COUNT, "N", 1, 1e12, "100M", "refuse images with more pixels, before decoding them"},
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON object instead of words"},
    {0},
};

static const option_group groups[] = {{"Options", verify_options}, {"Machine", engine_options}, {"Help", help_option}, {0}};

/* ---- gates */

/* Number in the metadata under "KEY.TENSOR" or "KEY". */
static bool metadata_number(const theo_arrays *reference, const char *key, const char *tensor, double *number) {
    char *own = text_format("%s.%s", key, tensor);
    const char *text = verify_metadata(reference, own);
    free(own);
    if (!text)
        text = verify_metadata(reference, key);
    return text && parse_real(text, number);
}

static compare_gate choose_gate(const arguments *args, const theo_arrays *reference, const char *tensor, const char *precision) {
    compare_gate gate = {.max_rel = INFINITY, .pcc = -INFINITY};
    const char *other = verify_metadata(reference, "precision");
    if (option_given(args, "pcc") || option_given(args, "max-rel")) {
        gate.max_rel = option_number(args, "max-rel", gate.max_rel);
        gate.pcc = option_number(args, "pcc", gate.pcc);
        return gate;
    }
    bool stored = metadata_number(reference, "max-rel", tensor, &gate.max_rel);
    stored = metadata_number(reference, "pcc", tensor, &gate.pcc) || stored;
    if (stored)
        return gate;
    if (strcmp(precision, "fp32") == 0 && (!other || strcmp(other, "fp32") == 0))
        gate.max_rel = 1e-3;
    else
        gate.pcc = 0.999;
    return gate;
}

/* ---- report */

typedef struct report {
    json_out json;
    bool as_json, printed;
    int compared, failed;
} report;

static void add_row(report *r, const char *name, const compare_result *result, const compare_gate *gate) {
    r->compared++;
    r->failed += !result->ok;
    char gate_text[80];
    bool both = isfinite(gate->max_rel) && isfinite(gate->pcc);
    int length = 0;
    if (isfinite(gate->max_rel))
        length = snprintf(gate_text, sizeof gate_text, "max %.3g of rms%s", gate->max_rel, both ? ", " : "");
    if (isfinite(gate->pcc))
        snprintf(gate_text + length, sizeof gate_text - (size_t)length, "pcc %.6g", gate->pcc);
    if (!r->as_json) {
        char *line = result->problem ? text_format("%-12s %-60s FAIL", name, result->problem)
                                     : text_format("%-12s max error %.3e  rms error %.3e of rms %.4g  pcc %.7f  gate: %s  %s",
                                                   name, result->max_error, result->rms_error, result->rms, result->pcc,
                                                   gate_text, result->ok ? "ok" : "FAIL");
        r->printed = stdout_line(line) && r->printed;
        free(line);
        return;
    }
    json_out *json = &r->json;
    json_open(json, '{');
    json_member_string(json, "name", name);
    json_member_double(json, "max_error", result->max_error);
    json_member_double(json, "rms_error", result->rms_error);
    json_member_double(json, "rms", result->rms);
    json_member_double(json, "pcc", result->pcc);
    json_member_string(json, "gate", gate_text);
    json_member_bool(json, "ok", result->ok);
    if (result->problem)
        json_member_string(json, "reason", result->problem);
    json_close(json, '}');
}

/* The input of the network, which is compared only when it was made from photos. */
static bool is_input(const char *name) {
    return strcmp(name, "plane") == 0 || strcmp(name, "picture") == 0 || strncmp(name, "image", 5) == 0;
}

static int compare_all(const verify_source *source, const network_tensors *tensors) {
    const arguments *args = source->args;
    const theo_arrays *reference = source->reference;
    const engine *opened = source->opened;
    const bool with_input = args->operand_count > 2;
    report r = {.as_json = option_given(args, "json"), .printed = true};
    if (r.as_json) {
        json_open(&r.json, '{');
        json_member_string(&r.json, "model", opened->info.name);
        json_member_string(&r.json, "reference", args->operands[1]);
        json_key(&r.json, "tensors");
        json_open(&r.json, '[');
    }
    for (int i = 0; i < tensors->count; i++) {
        const theo_array *ours = &tensors->arrays[i], *theirs = theo_arrays_find(reference, ours->name);
        if (!theirs || (is_input(ours->name) && !with_input))
            continue;
        compare_gate gate = choose_gate(args, reference, ours->name, opened->info.precision);
        compare_result result = compare_arrays(ours, theirs, &gate);
        add_row(&r, ours->name, &result, &gate);
    }
    if (r.compared == 0) {
        json_free(&r.json);
        message_error("%s holds none of the outputs of this network (%s)", args->operands[1],
                      opened->info.task == THEO_TASK_PAIR    ? "raw1, raw2, pts3d1, pts3d2, conf1, conf2"
                      : opened->info.task == THEO_TASK_DEPTH ? "points, normal, mask, metric_scale"
                                                             : "logits, scores, raw, descriptors");
        return EXIT_NOTHING;
    }
    if (r.as_json) {
        json_close(&r.json, ']');
        json_member_bool(&r.json, "ok", r.failed == 0);
        json_close(&r.json, '}');
        r.printed = stdout_line(r.json.text);
        json_free(&r.json);
    }
    if (r.failed)
        message_error("%d of %d tensors do not pass their gates", r.failed, r.compared);
    return r.failed == 0 && r.printed ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the command */

static int report_network(const theo_error *err) {
    if (interrupted())
        return interrupt_exit_code();
    message_error("%s", err->message);
    return EXIT_FAILED;
}

/* The network's tensors for the input that the command line or the reference gives, compared. */
static int run_keypoints(const verify_source *source, theo_session *session) {
    verify_plane plane;
    network_tensors tensors = {.count = 0};
    theo_error err;
    int code = verify_plane_get(&plane, source);
    if (code == EXIT_DONE)
        code = network_tensors_make(&tensors, session, plane.data, plane.width, plane.height, &err)
                   ? report_network(&err)
                   : compare_all(source, &tensors);
    network_tensors_free(&tensors);
    verify_plane_free(&plane);
    return code;
}

static int run_depth(const verify_source *source, theo_session *session) {
    verify_picture picture;
    network_tensors tensors = {.count = 0};
    theo_error err;
    int code = verify_picture_get(&picture, source);
    if (code == EXIT_DONE)
        code =
            network_tensors_depth(&tensors, session, &picture.input, &err) ? report_network(&err) : compare_all(source, &tensors);
    network_tensors_free(&tensors);
    verify_picture_free(&picture);
    return code;
}

static int run_pair(const verify_source *source, theo_session *session) {
    verify_views views;
    network_tensors tensors = {.count = 0};
    theo_error err;
    int code = verify_views_get(&views, source);
    if (code == EXIT_DONE)
        code = network_tensors_pair(&tensors, session, views.views, &err) ? report_network(&err) : compare_all(source, &tensors);
    network_tensors_free(&tensors);
    verify_views_free(&views);
    return code;
}

static int run_model(const verify_source *source) {
    theo_session *session;
    static int (*const runs[])(const verify_source *, theo_session *) = {
        [THEO_TASK_KEYPOINTS] = run_keypoints, [THEO_TASK_DEPTH] = run_depth, [THEO_TASK_PAIR] = run_pair};
    int code = engine_session(source->opened, &session);
    if (code)
        return code;
    code = runs[source->opened->info.task](source, session);
    theo_session_close(session);
    return code;
}

static int run(const arguments *args) {
    if (args->operand_count < 2)
        return usage_error("a model and a reference file are needed");
    theo_arrays *reference;
    theo_error err;
    if (theo_safetensors_read(&reference, args->operands[1], &err)) {
        message_error("%s", err.message);
        return EXIT_NOTHING;
    }
    engine opened;
    int code = engine_open(&opened, args, args->operands[0]);
    if (code == EXIT_DONE)
        code = run_model(&(verify_source){args, reference, &opened});
    engine_close(&opened);
    theo_arrays_free(reference);
    return code;
}

const command command_verify = {
    .name = "verify",
    .operands = "MODEL REFERENCE.safetensors [IMAGE...]",
    .summary = "compare a network's outputs with those of a reference file",
    .description = "Runs the network and compares its outputs with the tensors of the same names in a file that --dump of theo "
                   "keypoints, depth or pair wrote (another time, on another machine, in another precision) or another program "
                   "made. Without IMAGE the input is the file's own. A gate that fails is exit 1.",
    .groups = groups,
    .run = run,
};
