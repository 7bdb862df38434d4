/* moge_decoder.h - what a decoder of MoGe shares with the rest of the network: gathering and recording. The decoders themselves
 * are in moge1.h and moge2.h. */
#ifndef THEO_MODELS_MOGE_DECODER_H
#define THEO_MODELS_MOGE_DECODER_H

#include "models/moge.h"

#define THEO_MOGE_NORM_EPS 1e-5f /* of both decoders */

/* A layer's name in reports is made by theo_name. */
typedef struct theo_moge_recording {
    theo_plan *plan;
    const theo_moge *network;
    theo_moge_net *net;
    theo_moge_trace *trace; /* NULL: none */
} theo_moge_recording;

/* A stage for the trace, if there is one. */
void theo_moge_trace_stage(const theo_moge_recording *r, theo_tensor x, const char *name);
/* An input of coordinates for a map of h x w; is_quads: of so many quads. */
theo_tensor theo_moge_add_coordinates(const theo_moge_recording *r, int h, int w, bool is_quads);

#endif
