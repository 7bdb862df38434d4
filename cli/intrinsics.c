#include "intrinsics.h"
#include "message.h"
#include "text_file.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads up to `count` numbers that stand between characters of `separators`; gives how many, and where the next text begins. */
static int read_numbers(const char **text, const char *separators, double *numbers, int count) {
    int n = 0;
    while (n < count) {
        const char *start = *text + strspn(*text, separators);
        char *end;
        double value = strtod(start, &end);
        if (end == start || !isfinite(value))
            break;
        numbers[n++] = value;
        *text = end;
    }
    *text += strspn(*text, separators);
    return n;
}

/* The value of "key" in JSON text, or NULL. */
static const char *json_value(const char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *s = text; (s = strstr(s, key)) != NULL; s++) {
        if (s == text || s[-1] != '"' || s[length] != '"')
            continue;
        const char *value = s + length + 1;
        value += strspn(value, " \t\r\n");
        if (*value == ':')
            return value + 1 + strspn(value + 1, " \t\r\n");
    }
    return NULL;
}

static bool from_json(theo_intrinsics *camera, const char *text) {
    double m[9], center = 0;
    const char *value = json_value(text, "intrinsics_pixels"), *center_value = json_value(text, "pixel_center");
    if (!value || *value != '[' || read_numbers(&value, "[], \t\r\n", m, 9) != 9)
        return false;
    if (center_value && read_numbers(&center_value, "", &center, 1) != 1)
        return false;
    *camera = (theo_intrinsics){m[0], m[4], m[2] - center, m[5] - center};
    return true;
}

int intrinsics_read(theo_intrinsics *camera, const char *option, const char *text) {
    double four[4];
    const char *rest = text;
    bool ok;
    if (read_numbers(&rest, ",", four, 4) == 4 && *rest == 0) {
        *camera = (theo_intrinsics){four[0], four[1], four[2], four[3]};
        ok = true;
    } else {
        char *content = text_file_read(text);
        if (!content)
            return usage_error("--%s %s: neither four numbers fx,fy,cx,cy nor a readable file (%s)", option, text,
                               strerror(errno));
        rest = content;
        ok = read_numbers(&rest, ", \t\r\n", four, 4) == 4 && *rest == 0;
        if (ok)
            *camera = (theo_intrinsics){four[0], four[1], four[2], four[3]};
        else
            ok = from_json(camera, content);
        free(content);
    }
    if (!ok)
        return usage_error("--%s %s: the file must hold four numbers fx fy cx cy, or JSON with a 3x3 matrix intrinsics_pixels",
                           option, text);
    if (!(camera->fx > 0) || !(camera->fy > 0))
        return usage_error("--%s %s: the focal lengths fx and fy must be above 0", option, text);
    return EXIT_DONE;
}
