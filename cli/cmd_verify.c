/* theo verify: the network's outputs against those of a reference file. */
#include "command.h"
#include "common.h"
#include "compare.h"
#include "dump.h"
#include "interrupt.h"
#include "message.h"
#include "outputs.h"
#include "progress.h"
#include <limits.h>
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
    {"bn-eps", 0, OPTION_NUMBER, "E", 1e-12, 1, "by the kind of file", "epsilon of the batch norm"},
    {"orientation", 0, OPTION_CHOICE, "ignore|apply", 0, 0, "as the reference says",
     "what to do about the EXIF orientation of the photo"},
    {"allow-truncated", 0, OPTION_FLAG, NULL, 0, 0, NULL, "decode what there is of a JPEG that ends early"},
    {"max-pixels", 0, OPTION_COUNT, "N", 1, 1e12, "100M", "refuse images with more pixels, before decoding them"},
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON object instead of words"},
    {0},
};

static const option_group groups[] = {{"Options", verify_options}, {"Machine", engine_options}, {"Help", help_option}, {0}};

static const char *metadata(const theo_arrays *reference, const char *key) {
    for (int i = 0; i < reference->metadata_count; i++)
        if (strcmp(reference->metadata_keys[i], key) == 0)
            return reference->metadata_values[i];
    return NULL;
}

/* ---- the input of the network */

/* The reference's options, where the command line has none of its own. */
static int apply_metadata(const arguments *args, const theo_arrays *reference, theo_decode_options *decode,
                          theo_detect_options *detect) {
    const char *gray = metadata(reference, "gray"), *size = metadata(reference, "size"),
               *orientation = metadata(reference, "orientation");
    network_size parsed;
    if (gray && !option_given(args, "gray")) {
        int index = choice_index("red|rgb601|luma", gray);
        if (index < 0)
            return usage_error("the reference was made with gray %s, which this version does not know", gray);
        detect->gray = (theo_gray)index;
    }
    if (size && !option_given(args, "size")) {
        if (!parse_size(size, &parsed) || parsed.fit != THEO_FIT_EXACT)
            return usage_error("the reference was made with size %s, which this version does not know", size);
        detect->fit = THEO_FIT_EXACT;
        detect->net_width = parsed.width;
        detect->net_height = parsed.height;
    }
    if (orientation && !option_given(args, "orientation"))
        decode->orientation = strcmp(orientation, "apply") == 0 ? THEO_ORIENTATION_APPLY : THEO_ORIENTATION_IGNORE;
    return EXIT_DONE;
}

/* The plane of the image. */
static int plane_from_image(const arguments *args, const theo_arrays *reference, const engine *opened, float **plane, int *width,
                            int *height) {
    const char *path = args->operands[2];
    theo_decode_options decode;
    theo_detect_options detect;
    theo_image *image = NULL;
    theo_error err;
    decode_options(&decode, args, THEO_ORIENTATION_IGNORE);
    detect_options(&detect, args, opened);
    int code = apply_metadata(args, reference, &decode, &detect);
    if (code)
        return code;
    if (theo_image_load(&image, path, &decode, &err) || theo_detect_plane(image, &detect, plane, width, height, &err)) {
        char text[1600];
        error_text(text, sizeof text, path, &err);
        message_error("%s", text);
        code = EXIT_FAILED;
    }
    theo_image_free(image);
    return code;
}

/* The plane that the reference itself was made from; it stays the reference's. */
static int plane_from_reference(const arguments *args, const theo_arrays *reference, const float **plane, int *width,
                                int *height) {
    static const char *const for_images[] = {"gray", "size", "orientation", "allow-truncated", "max-pixels"};
    for (size_t i = 0; i < sizeof for_images / sizeof *for_images; i++)
        if (option_given(args, for_images[i]))
            return usage_error("--%s has no effect without an IMAGE", for_images[i]);
    const theo_array *found = theo_arrays_find(reference, "plane");
    if (!found || found->rank != 2 || found->dtype != THEO_DTYPE_F32 || found->shape[0] > INT_MAX || found->shape[1] > INT_MAX)
        return usage_error("%s has no tensor plane [H, W] of float32: an IMAGE is needed", args->operands[1]);
    *plane = found->data;
    *height = (int)found->shape[0];
    *width = (int)found->shape[1];
    return EXIT_DONE;
}

/* ---- gates */

/* Number in the metadata under "KEY.TENSOR" or "KEY". */
static bool metadata_number(const theo_arrays *reference, const char *key, const char *tensor, double *number) {
    char *own = text_format("%s.%s", key, tensor);
    const char *text = metadata(reference, own);
    free(own);
    if (!text)
        text = metadata(reference, key);
    return text && parse_real(text, number);
}

static compare_gate choose_gate(const arguments *args, const theo_arrays *reference, const char *tensor, const char *precision) {
    compare_gate gate = {.max_rel = INFINITY, .pcc = -INFINITY};
    const char *other = metadata(reference, "precision");
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

static int compare_all(const arguments *args, const theo_arrays *reference, const network_tensors *tensors, const engine *opened,
                       bool with_plane) {
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
        if (!theirs || (strcmp(ours->name, "plane") == 0 && !with_plane))
            continue;
        compare_gate gate = choose_gate(args, reference, ours->name, opened->info.precision);
        compare_result result = compare_arrays(ours, theirs, &gate);
        add_row(&r, ours->name, &result, &gate);
    }
    if (r.compared == 0) {
        json_free(&r.json);
        message_error("%s holds none of the outputs of this network (logits, scores, raw, descriptors)", args->operands[1]);
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

static int run_network(const arguments *args, const theo_arrays *reference, const engine *opened, const float *plane, int width,
                       int height) {
    theo_session *session;
    theo_session_options options;
    network_tensors tensors;
    theo_error err;
    int code;
    theo_session_options_init(&options);
    options.progress = progress_within;
    if (theo_session_open(&session, opened->model, &options, &err)) {
        message_error("%s", err.message);
        return EXIT_NOTHING;
    }
    if (network_tensors_make(&tensors, session, plane, width, height, &err) == THEO_OK) {
        code = compare_all(args, reference, &tensors, opened, args->operand_count == 3);
        network_tensors_free(&tensors);
    } else if (interrupted()) {
        code = interrupt_exit_code();
    } else {
        message_error("%s", err.message);
        code = EXIT_FAILED;
    }
    theo_session_close(session);
    return code;
}

static int run_model(const arguments *args, const theo_arrays *reference, const engine *opened) {
    float *made = NULL;
    const float *plane = NULL;
    int width = 0, height = 0;
    int code = args->operand_count == 3 ? plane_from_image(args, reference, opened, &made, &width, &height)
                                        : plane_from_reference(args, reference, &plane, &width, &height);
    if (code == EXIT_DONE)
        code = run_network(args, reference, opened, made ? made : plane, width, height);
    theo_buffer_free(made);
    return code;
}

static int run(const arguments *args) {
    if (args->operand_count < 2)
        return usage_error("a model and a reference file are needed");
    if (args->operand_count > 3)
        return usage_error("keypoint models are compared on one image, not %d", args->operand_count - 2);
    theo_arrays *reference;
    theo_error err;
    if (theo_safetensors_read(&reference, args->operands[1], &err)) {
        message_error("%s", err.message);
        return EXIT_NOTHING;
    }
    engine opened;
    int code = engine_open(&opened, args, args->operands[0]);
    if (code == EXIT_DONE)
        code = engine_needs(&opened, THEO_TASK_KEYPOINTS);
    if (code == EXIT_DONE)
        code = run_model(args, reference, &opened);
    engine_close(&opened);
    theo_arrays_free(reference);
    return code;
}

const command command_verify = {
    .name = "verify",
    .operands = "MODEL REFERENCE.safetensors [IMAGE]",
    .summary = "compare a network's outputs with those of a reference file",
    .description = "Runs the network and compares its outputs with the tensors of the same names in a file that theo keypoints "
                   "--dump wrote (another time, on another machine, in another "
                   "precision) or another program made. Without IMAGE the input is the file's own tensor plane. A gate that "
                   "fails is exit 1.",
    .groups = groups,
    .run = run,
};
