/* weights_internal.h - what the readers of the containers share. */
#ifndef THEO_FORMATS_WEIGHTS_INTERNAL_H
#define THEO_FORMATS_WEIGHTS_INTERNAL_H

#include "base/map.h"
#include "formats/bump.h"
#include "formats/json.h"
#include "formats/names.h"
#include "formats/weights.h"

struct theo_weights {
    theo_map map;
    bool mapped; /* map is ours to close */
    bool verify_checksums;
    theo_pool *pool;  /* while the file is opened; may be NULL */
    theo_bump memory; /* names, items, metadata, config */
    const char *path; /* or the name of a memory block */
    const char *source;
    theo_weight *items;
    int count, capacity;
    theo_named_value *index;
    const theo_json *metadata; /* object of strings, or NULL */
    const char *config_json;
};

/* The containers. Each fills items (theo_weights_add), source and what stands beside the tensors from w->map. */
theo_status theo_safetensors_parse(theo_weights *w, theo_error *err);
theo_status theo_torch_zip_parse(theo_weights *w, theo_error *err);
theo_status theo_torch_legacy_parse(theo_weights *w, theo_error *err);
bool theo_torch_legacy_matches(const theo_map *map);

/* Room for `count` tensors. */
theo_status theo_weights_reserve(theo_weights *w, int count, theo_error *err);
/* The next tensor, zeroed; its name is copied. Within the room reserved. */
theo_status theo_weights_add(theo_weights *w, const char *name, theo_weight **item, theo_error *err);

/* Row-major strides for its shape. */
void theo_weight_set_contiguous(theo_weight *item);

/* The same checks and views over memory that outlives the weights; `name` stands for the file in messages. For tests
 * and fuzzers. */
theo_status theo_weights_open_memory(theo_weights **weights, const void *data, size_t bytes, const char *name,
                                     const theo_weights_options *options, theo_error *err);

#endif
