/* inputs.h - the images that a command line names: files, folders and stdin. */
#ifndef THEO_CLI_INPUTS_H
#define THEO_CLI_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <theo/image.h>

typedef struct input {
    char *path;  /* as given, or FOLDER/relative; "-" is stdin */
    char *name;  /* the file's name, or its path inside the folder that was given: with extension, '/' as separator; "stdin" */
    char *stem;  /* name without extension: base of the output files */
    char *error; /* why there is nothing to decode (a folder that cannot be read), or NULL */
} input;

typedef struct inputs {
    input *items;
    int count;
    bool any_folder;
    void *stdin_data; /* all of stdin, once read */
    size_t stdin_bytes;
} inputs;

/* Lists the operands; the JPEG and PNG files of folders (by extension, hidden ones left out) sorted by name. EXIT_NOTHING for
 * wrong usage: stdin twice, an empty folder, no input, a folder where none may stand. What is wrong with a single input is found
 * when it is decoded. */
int inputs_collect(inputs *list, const char *const *operands, int count, bool allow_folders, bool recursive);
/* One more file, named by its own path. */
void inputs_add(inputs *list, const char *path, const char *name);
void inputs_free(inputs *list);

/* Reads stdin if it is among the inputs. EXIT_DONE, EXIT_NOTHING for a terminal, or the exit code of an interruption. */
int inputs_read_stdin(inputs *list);

/* Decodes input `index`; stdin as often as any other. */
theo_status input_decode(const inputs *list, int index, const theo_decode_options *options, theo_image **image, theo_error *err);

/* EXIT_NOTHING when --`option` would overwrite one of the inputs with its file `path` (which may be NULL). */
int inputs_spare(const inputs *list, const char *option, const char *path);

/* Two keys of the list that are equal: their indices in *a < *b. */
bool find_duplicate(const char *const *keys, int count, int *a, int *b);

#endif
