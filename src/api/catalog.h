/* catalog.h - the models that have a name, and where their files may lie. */
#ifndef THEO_API_CATALOG_H
#define THEO_API_CATALOG_H

#include "base/error.h"

const theo_catalog_entry *theo_catalog_find(const char *name); /* NULL: no such name */

/* The checkpoint inside a folder: model.safetensors, model.pt or model.pth. False if there is none. */
bool theo_catalog_file_in(char *path, size_t capacity, const char *folder);

/* Is the argument of theo_model_open a path rather than a name? It has a '/', ends in the extension of a checkpoint, or exists.
 */
bool theo_catalog_is_path(const char *name_or_path);

#endif
