/* keystore.h - keypoints of many images that pairs still need, in bounded memory: what is over the budget lies in an unlinked
 * temporary file until it is asked for. */
#ifndef THEO_CLI_KEYSTORE_H
#define THEO_CLI_KEYSTORE_H

#include <stddef.h>
#include <theo/theo.h>

typedef struct keystore keystore;

/* Room for the keypoints of `images` images of one model; about `budget` bytes of them stay in memory. Image i is forgotten after
 * uses[i] calls of keystore_release. */
keystore *keystore_new(int images, const int *uses, size_t budget);
void keystore_free(keystore *store);

/* Copies the keypoints of an image. */
theo_status keystore_put(keystore *store, int image, const theo_keypoints *points, theo_error *err);
/* A view that holds until its keystore_release; what was put must be there and not be forgotten. */
theo_status keystore_get(keystore *store, int image, theo_keypoints *view, theo_error *err);
/* Ends one use, also of an image that was never put or got. */
void keystore_release(keystore *store, int image);

/* Bytes in memory and in the temporary file, for the tests. */
size_t keystore_memory(const keystore *store);
size_t keystore_spilled(const keystore *store);

#endif
