#include "message.h"
#include "progress.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *command_name = "";

void message_set_command(const char *name) {
    command_name = name;
}

static void say(const char *prefix, const char *format, va_list arguments) {
    progress_wipe();
    flockfile(stderr);
    fputs(prefix, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void message_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("theo: ", format, arguments);
    va_end(arguments);
}

void message_warning(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("theo: warning: ", format, arguments);
    va_end(arguments);
}

int usage_error(const char *format, ...) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "theo%s%s: ", *command_name ? " " : "", command_name);
    va_list arguments;
    va_start(arguments, format);
    say(prefix, format, arguments);
    va_end(arguments);
    fprintf(stderr, "Try: theo help%s%s\n", *command_name ? " " : "", command_name);
    return EXIT_NOTHING;
}

char *text_format(const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        message_error("out of memory");
        exit(EXIT_FAILED);
    }
    return text;
}

char *text_copy(const char *text) {
    return text_format("%s", text);
}

void *memory_grow(void *old, unsigned long count, unsigned long size) {
    void *block = size && count > SIZE_MAX / size ? NULL : realloc(old, count && size ? count * size : 1);
    if (!block) {
        message_error("out of memory");
        exit(EXIT_FAILED);
    }
    return block;
}

void *memory_new(unsigned long count, unsigned long size) {
    void *block = memory_grow(NULL, count, size);
    memset(block, 0, count * size);
    return block;
}
