#include "formats/torch.h"

#include "base/error.h"
#include "formats/dtype.h"
#include "formats/names.h"
#include "formats/text.h"

#include <string.h>

/* Of the configuration. Lists may contain themselves, and one that holds a list twice, which holds another twice, ... doubles
 * with every level. */
enum { DEEPEST = 32, MOST_ITEMS = 1 << 20, LARGEST_TEXT = 4 << 20 };

/* ---------------------------------------------------------------- the configuration as JSON */

typedef struct writer {
    theo_text text;
    int items; /* visited so far */
} writer;

static bool add_value(writer *w, const theo_value *value, int depth);

/* Does a string key stand twice? True also when that cannot be found out. */
static bool has_doubles(const theo_value *dict) {
    theo_named_value *names = theo_alloc((size_t)dict->count + 1, sizeof *names);
    int count = 0;
    if (!names)
        return true;
    for (const theo_item *item = dict->first; item; item = item->next)
        if (item->key->type == THEO_VALUE_STRING)
            names[count++].text = item->key->string;
    bool doubles = theo_names_sort(names, count) != NULL;
    theo_free(names);
    return doubles;
}

static bool add_sequence(writer *w, const theo_value *value, int depth) {
    theo_text_add(&w->text, "[", 1);
    for (const theo_item *item = value->first; item; item = item->next) {
        if (item != value->first)
            theo_text_add(&w->text, ",", 1);
        if (!add_value(w, item->value, depth + 1))
            return false;
    }
    theo_text_add(&w->text, "]", 1);
    return true;
}

static bool add_member(writer *w, const theo_item *item, bool first, int depth) {
    if (!first)
        theo_text_add(&w->text, ",", 1);
    theo_text_add_json_string(&w->text, item->key->string);
    theo_text_add(&w->text, ":", 1);
    return add_value(w, item->value, depth);
}

/* Members with other keys than strings are left out. */
static bool add_object(writer *w, const theo_value *value, int depth) {
    bool first = true;
    if (has_doubles(value))
        return false;
    theo_text_add(&w->text, "{", 1);
    for (const theo_item *item = value->first; item; item = item->next) {
        if (item->key->type != THEO_VALUE_STRING)
            continue;
        if (!add_member(w, item, first, depth + 1))
            return false;
        first = false;
    }
    theo_text_add(&w->text, "}", 1);
    return true;
}

/* False for what has no place in a configuration: tensors, classes, and what is over the limits. */
static bool add_value(writer *w, const theo_value *value, int depth) {
    bool container = value->type >= THEO_VALUE_TUPLE && value->type <= THEO_VALUE_NAMESPACE;
    if (depth > DEEPEST || w->text.length > LARGEST_TEXT || w->text.failed || (container && value->count > MOST_ITEMS - w->items))
        return false;
    w->items += container ? value->count : 0;
    switch (value->type) {
    case THEO_VALUE_NONE:
        theo_text_printf(&w->text, "null");
        return true;
    case THEO_VALUE_BOOL:
        theo_text_printf(&w->text, "%s", value->truth ? "true" : "false");
        return true;
    case THEO_VALUE_INTEGER:
        theo_text_printf(&w->text, "%lld", (long long)value->integer);
        return true;
    case THEO_VALUE_FLOAT:
        theo_text_add_json_number(&w->text, value->number);
        return true;
    case THEO_VALUE_STRING:
        theo_text_add_json_string(&w->text, value->string);
        return true;
    case THEO_VALUE_TUPLE:
    case THEO_VALUE_LIST:
        return add_sequence(w, value, depth);
    case THEO_VALUE_DICT:
    case THEO_VALUE_NAMESPACE:
        return add_object(w, value, depth);
    case THEO_VALUE_CLASS:
    case THEO_VALUE_STORAGE:
    case THEO_VALUE_TENSOR:
        break;
    }
    return false;
}

/* Every member of the root but the state dict, as one object; a member that has no place in a configuration (an optimiser's
 * tensors) is left out. */
static theo_status collect_config(theo_weights *weights, const theo_value *root, const theo_value *state, theo_error *err) {
    writer w = {0};
    bool first = true;
    theo_text_add(&w.text, "{", 1);
    for (const theo_item *item = root->first; item; item = item->next) {
        if (item->key->type != THEO_VALUE_STRING || item->value->type == THEO_VALUE_TENSOR || item->value == state)
            continue;
        size_t before = w.text.length;
        if (add_member(&w, item, first, 1))
            first = false;
        else if (!w.text.failed)
            w.text.data[w.text.length = before] = 0;
    }
    theo_text_add(&w.text, "}", 1);
    char *copy = w.text.failed ? NULL : theo_bump_text(&weights->memory, w.text.data, w.text.length);
    theo_text_free(&w.text);
    if (!copy)
        return theo_fail(err, THEO_MEMORY, weights->path, NULL, "out of memory for the configuration");
    weights->config_json = first ? NULL : copy;
    return THEO_OK;
}

/* ---------------------------------------------------------------- tensors */

/* Does every element lie within the storage? */
static theo_status check_extent(const theo_weights *w, const theo_tensor *t, const char *name, theo_error *err) {
    int64_t last = t->offset; /* index of the last element in memory */
    bool fits = t->offset >= 0 && t->storage->count >= 0, empty = false;
    for (int i = 0; i < t->rank; i++)
        empty = empty || t->shape[i] == 0;
    for (int i = 0; i < t->rank && fits; i++) {
        int64_t step;
        fits = t->shape[i] >= 0 && t->stride[i] >= 0 &&
               (empty ||
                (!__builtin_mul_overflow(t->shape[i] - 1, t->stride[i], &step) && !__builtin_add_overflow(last, step, &last)));
    }
    if (!fits || (empty ? t->offset > t->storage->count : last >= t->storage->count))
        return theo_fail(err, THEO_BOUNDS, w->path, name,
                         "offset, sizes and strides of the tensor lead outside of its storage of %lld elements",
                         (long long)t->storage->count);
    return THEO_OK;
}

static theo_status add_tensor(theo_weights *w, const char *name, const theo_tensor *t, theo_storage_fn find, void *user,
                              theo_error *err) {
    theo_weight *item;
    const uint8_t *data;
    size_t bytes;
    THEO_TRY(theo_weights_add(w, name, &item, err));
    THEO_TRY(check_extent(w, t, name, err));
    item->dtype = t->storage->dtype;
    item->rank = t->rank;
    memcpy(item->shape, t->shape, sizeof item->shape);
    memcpy(item->stride, t->stride, sizeof item->stride);
    if (!theo_shape_bytes(t->shape, t->rank, item->dtype, &item->elements, &bytes)) /* strides of 0 allow any size */
        return theo_fail(err, THEO_BOUNDS, w->path, name, "the size of the shape overflows 64 bits");
    THEO_TRY(find(user, t->storage, name, &data, err));
    item->data = data + (size_t)t->offset * theo_dtype_bytes(item->dtype);
    return THEO_OK;
}

static int count_tensors(const theo_value *dict) {
    int count = 0;
    for (const theo_item *item = dict->first; item; item = item->next)
        count += item->key->type == THEO_VALUE_STRING && item->value->type == THEO_VALUE_TENSOR;
    return count;
}

static const theo_value *find_state(const theo_value *root) {
    static const char *const names[] = {"model", "state_dict"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const theo_value *state = theo_value_get(root, names[i]);
        if (state && state->type == THEO_VALUE_DICT && count_tensors(state))
            return state;
    }
    return count_tensors(root) ? root : NULL;
}

theo_status theo_torch_collect(theo_weights *w, const theo_value *root, theo_storage_fn find, void *user, theo_error *err) {
    if (root->type != THEO_VALUE_DICT)
        return theo_fail(err, THEO_STRUCTURE, w->path, NULL, "the checkpoint's top object is not a dict");
    if (has_doubles(root))
        return theo_fail(err, THEO_PICKLE, w->path, NULL, "a key stands twice in the checkpoint's top dict");
    const theo_value *state = find_state(root);
    if (!state)
        return theo_fail(err, THEO_STRUCTURE, w->path, NULL,
                         "no tensors: they must lie in the checkpoint's dict itself or under \"model\" or \"state_dict\"");
    THEO_TRY(theo_weights_reserve(w, count_tensors(state), err));
    for (const theo_item *item = state->first; item; item = item->next)
        if (item->key->type == THEO_VALUE_STRING && item->value->type == THEO_VALUE_TENSOR)
            THEO_TRY(add_tensor(w, item->key->string, item->value->tensor, find, user, err));
    return collect_config(w, root, state, err);
}
