/* epilogue.h - what kernels do to an output element on its way to memory, and how convolutions see beyond the edge. */
#ifndef THEO_KERNELS_EPILOGUE_H
#define THEO_KERNELS_EPILOGUE_H

typedef enum theo_activation { THEO_ACT_NONE = 0, THEO_ACT_RELU, THEO_ACT_GELU } theo_activation;
typedef enum theo_padding { THEO_PAD_ZERO = 0, THEO_PAD_REPLICATE } theo_padding;

/* y of channel c becomes act(y + bias[c]) * scale[c] + shift[c]. Arrays have exactly as many elements as there are output
 * channels (no padding is read); NULL leaves the step out; scale and shift come together. */
typedef struct theo_channel_epilogue {
    const float *bias;
    theo_activation act;
    const float *scale, *shift;
} theo_channel_epilogue;

#endif
