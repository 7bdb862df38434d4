#include "base/take_options.h"

#include "base/error.h"
#include <string.h>

theo_status theo_options_take(void *out, size_t out_size, const void *given, const char *type, theo_error *err) {
    if (!given)
        return THEO_OK;
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > out_size)
        return theo_fail(err, THEO_ARGUMENT, NULL, type, "its size is %zu, this library knows up to %zu: fill it with %s_init",
                         size, out_size, type);
    memcpy(out, given, size);
    memcpy(out, &out_size, sizeof out_size);
    return THEO_OK;
}
