/* torch_write.h - writes checkpoints as torch.save lays them out, zip or legacy. */
#ifndef THEO_FORMATS_TORCH_WRITE_H
#define THEO_FORMATS_TORCH_WRITE_H

#include <theo/files.h>

typedef struct theo_torch_options {
    bool legacy;           /* the layout before PyTorch 1.6 instead of the zip archive */
    const char *state_key; /* the state dict lies under this key of the top dict, beside the members of config_json; NULL: it is
                              the top object */
    const char
        *config_json; /* an object whose members go into the top dict ("{\"model_config\": {...}}"), or NULL. Needs state_key */
    const char *namespace_key; /* the member of config_json that becomes an argparse.Namespace instead of a dict, or NULL */
} theo_torch_options;

/* The arrays (F64, F32, F16, BF16, I64, I32, BOOL) become an OrderedDict of tensors, each with a storage of its own; arrays of
 * the same data, type and size share one. */
theo_status theo_torch_write(const char *path, const theo_array *arrays, int count, const theo_torch_options *options,
                             theo_error *err);

#endif
