/* theo info: facts of a model, and the plan that it runs by. */
#include "command.h"
#include "common.h"
#include "message.h"
#include "outputs.h"
#include "plan_table.h"
#include <inttypes.h>
#include <stdio.h>

static const option_spec info_options[] = {
    {"plan", 0, OPTION_FLAG, NULL, 0, 0, NULL, "the operations with shapes, FLOPs, bytes and where they lie in the arena"},
    {"size", 0, OPTION_SIZE, "HxW", 0, 0, "what the model is usually given",
     "size of the network's input, or for depth of the photo, for --plan"},
    {"tokens", 0, OPTION_COUNT, "N", 16, 16384, "1800", "depth: patches that the network cuts the photo into, for --plan"},
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON object instead of words"},
    {0},
};

static const option_group groups[] = {{"Options", info_options}, {"Machine", engine_options}, {"Help", help_option}, {0}};

static bool print_json(const theo_model_info *info, const theo_plan_report *plan) {
    json_out json = {0};
    json_open(&json, '{');
    json_member_string(&json, "name", info->name);
    json_member_string(&json, "kind", info->kind);
    json_member_string(&json, "file", info->path);
    json_member_string(&json, "source", info->source);
    json_member_int(&json, "bytes", info->file_bytes);
    json_member_int(&json, "packed_bytes", (int64_t)info->weight_bytes);
    json_member_int(&json, "parameters", info->parameters);
    json_key(&json, "config");
    json_raw(&json, info->config_json);
    json_member_int(&json, "descriptor_dim", info->descriptor_dim);
    json_member_string(&json, "precision", info->precision);
    json_member_string(&json, "isa", info->isa);
    json_member_int(&json, "threads", info->threads);
    json_member_double(&json, "load_ms", info->load_ms);
    json_member_string(&json, "licence", info->licence);
    if (plan)
        json_member_plan(&json, plan);
    json_close(&json, '}');
    bool ok = stdout_line(json.text);
    json_free(&json);
    return ok;
}

static bool print_words(const theo_model_info *info, const theo_plan_report *plan) {
    printf("name         %s\n", info->name);
    printf("kind         %s%s\n", info->kind,
           info->task == THEO_TASK_KEYPOINTS && !info->descriptor_dim ? " (detector only: no descriptors)" : "");
    printf("file         %s (%s)\n", info->path, info->source);
    printf("bytes        %" PRId64 " in the file, %zu packed\n", info->file_bytes, info->weight_bytes);
    printf("parameters   %" PRId64 "\n", info->parameters);
    printf("config       %s\n", info->config_json);
    printf("precision    %s\n", info->precision);
    printf("isa          %s\n", info->isa);
    printf("threads      %d\n", info->threads);
    printf("load         %.1f ms\n", info->load_ms);
    printf("licence      %s\n", info->licence);
    if (plan) {
        printf("\n");
        plan_print(plan, false);
    }
    return stdout_flush();
}

static int run(const arguments *args) {
    const setting *given = option_find(args, "size");
    int code;
    if ((code = option_needs(args, "size", "plan")) || (code = option_needs(args, "tokens", "plan")))
        return code;
    if (args->operand_count != 1)
        return usage_error("one model is needed, not %d; theo models lists those that are known", args->operand_count);
    if (given && given->size.fit != THEO_FIT_EXACT)
        return usage_error("--size %s: --plan needs a size HxW", given->text);

    engine opened;
    if ((code = engine_open(&opened, args, args->operands[0])))
        return code;
    theo_error err;
    theo_session *session = NULL;
    theo_plan_report *plan = NULL;
    const int width = given ? given->size.width : opened.info.input_width;
    const int height = given ? given->size.height : opened.info.input_height;
    const int tokens = (int)option_count(args, "tokens", 0);
    if (option_given(args, "plan") && (theo_session_open(&session, opened.model, NULL, &err) ||
                                       theo_session_plan(session, width, height, tokens, &plan, &err))) {
        message_error("%s", err.message);
        code = EXIT_NOTHING;
    } else {
        bool ok = option_given(args, "json") ? print_json(&opened.info, plan) : print_words(&opened.info, plan);
        code = ok ? EXIT_DONE : EXIT_FAILED;
    }
    theo_plan_report_free(plan);
    theo_session_close(session);
    engine_close(&opened);
    return code;
}

const command command_info = {
    .name = "info",
    .operands = "MODEL",
    .summary = "what a model is, and with --plan how it is computed",
    .description = "Shows kind, configuration, size and licence of a model (a name that theo models lists, a checkpoint, or a "
                   "folder with one), and the CPU level and "
                   "threads in use.",
    .groups = groups,
    .run = run,
};
