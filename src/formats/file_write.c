#include "base/error.h"
#include "base/file.h"

#include <theo/files.h>

theo_status theo_file_write(const char *path, const void *data, size_t bytes, theo_error *err) {
    theo_file file;
    if (!path || (!data && bytes))
        return theo_fail(err, THEO_ARGUMENT, NULL, "theo_file_write", "path and data must not be NULL");
    THEO_TRY(theo_file_open(&file, path, err));
    theo_status status = theo_file_append(&file, data, bytes, err);
    if (status == THEO_OK)
        return theo_file_commit(&file, err);
    theo_file_abandon(&file);
    return status;
}
