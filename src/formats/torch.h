/* torch.h - from the pickle of a checkpoint to named tensors: what the zip layout and the legacy one have in common. */
#ifndef THEO_FORMATS_TORCH_H
#define THEO_FORMATS_TORCH_H

#include "formats/pickle.h"
#include "formats/weights_internal.h"

/* Finds the bytes of a storage: exactly storage->count elements. THEO_BOUNDS otherwise; `tensor` is for messages. */
typedef theo_status (*theo_storage_fn)(void *user, const theo_storage *storage, const char *tensor, const uint8_t **data,
                                       theo_error *err);

/* Fills w->items with the tensors of the state dict - the root itself, or the dict under "model" or "state_dict" - and
 * w->config_json with what else the root holds. THEO_STRUCTURE where there is no state dict. */
theo_status theo_torch_collect(theo_weights *w, const theo_value *root, theo_storage_fn find, void *user, theo_error *err);

#endif
