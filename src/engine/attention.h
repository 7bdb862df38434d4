/* attention.h - driver of attention: softmax(q k^T / sqrt(d)) v for each head, without a matrix of queries times keys. With
 * rotary positions (Su et al., arXiv:2104.09864) q and k are turned on their way into the panels. */
#ifndef THEO_ENGINE_ATTENTION_H
#define THEO_ENGINE_ATTENTION_H

#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct theo_attention_call {
    const theo_kernels *kernels;
    int heads, dim; /* dim: channels of a head, a multiple of 16 */
    int queries, keys;
    const float *q, *k, *v; /* [queries], [keys], [keys] rows of heads * dim values */
    size_t q_pitch, k_pitch, v_pitch;
    const float *q_turn, *k_turn; /* [queries], [keys] rows of dim values, as of theo_rotation; both NULL: no positions */
    size_t q_turn_pitch, k_turn_pitch;
    float *out; /* [queries] rows of heads * dim values */
    size_t out_pitch;
} theo_attention_call;

/* Bytes of scratch for all threads together, a multiple of 64. Reads shapes alone. */
size_t theo_attention_scratch_bytes(const theo_attention_call *call, int threads);
/* scratch: 64-byte aligned. The result does not depend on the pool. */
void theo_attention_run(const theo_attention_call *call, theo_pool *pool, void *scratch);

#endif
