/* peak_impl.h - the fused multiply-add units at full tilt. */
#include <stdint.h>

enum { FMA_UNROLL = 16 };

static const double fma_flops = 2.0 * VW * FMA_CHAINS * FMA_UNROLL;

static float fma_rounds(int64_t rounds) {
    volatile float factor = 0.999f, term = 0.001f; /* unknown to the compiler, and away from overflow and denormals */
    vf f = v_set1(factor), t = v_set1(term), chain[FMA_CHAINS];
    for (int i = 0; i < FMA_CHAINS; i++)
        chain[i] = v_set1((float)i);
    for (int64_t r = 0; r < rounds; r++)
        for (int step = 0; step < FMA_UNROLL; step++)
            for (int i = 0; i < FMA_CHAINS; i++)
                chain[i] = v_fma(chain[i], f, t);
    vf sum = v_zero();
    for (int i = 0; i < FMA_CHAINS; i++)
        sum = v_add(sum, chain[i]);
    return v_sum(sum);
}
