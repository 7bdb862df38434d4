#include "bench_model.h"
#include "interrupt.h"
#include "message.h"
#include "temporary.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <theo/inspect.h>
#include <unistd.h>

static int open_file(engine *opened, const arguments *args, const char *name, double loads[BENCH_LOADS], int *count) {
    enum { BUDGET_MS = 1000 };
    double spent = 0;
    *count = 0;
    while (*count < BENCH_LOADS && spent < BUDGET_MS) {
        engine_close(opened);
        int code = engine_open(opened, args, name);
        if (code)
            return code;
        loads[*count] = opened->info.load_ms;
        spent += loads[(*count)++];
    }
    return EXIT_DONE;
}

/* In a process of its own: the numbers need as much memory as the model, and the peak that is reported is to be the model's. */
static int synthesize(const char *name, const char *path) {
    theo_error err;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        if (theo_synthesize(name, NULL, path, &err) == THEO_OK)
            _exit(EXIT_DONE);
        message_error("%s", err.message);
        _exit(EXIT_NOTHING);
    }
    int state;
    while (child > 0 && waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            child = -1;
    if (child < 0) {
        message_error("cannot start a process: %s", strerror(errno));
        return EXIT_NOTHING;
    }
    if (interrupted())
        return interrupt_exit_code();
    return WIFEXITED(state) ? WEXITSTATUS(state) : EXIT_NOTHING;
}

static bool is_pair(const char *name) {
    const theo_catalog_entry *entry;
    for (int i = 0; (entry = theo_catalog(i)); i++)
        if (strcmp(entry->name, name) == 0)
            return entry->task == THEO_TASK_PAIR;
    return false;
}

/* A file, or for pairs a folder: their configuration does not fit into a safetensors file. */
static int open_synthetic(engine *opened, const arguments *args, const char *name, double loads[BENCH_LOADS], int *count) {
    int code = catalog_check(name);
    if (code)
        return code;
    char *folder = temporary_folder_make();
    if (!folder)
        return EXIT_NOTHING;
    char *path = text_format("%s/model%s", folder, is_pair(name) ? "" : ".safetensors");
    code = synthesize(name, path);
    if (!code)
        code = open_file(opened, args, path, loads, count);
    temporary_folder_remove(folder);
    free(path);
    return code;
}

int bench_model_open(engine *opened, const arguments *args, const char *name, bool synthetic, double loads[BENCH_LOADS],
                     int *count) {
    return synthetic ? open_synthetic(opened, args, name, loads, count) : open_file(opened, args, name, loads, count);
}
