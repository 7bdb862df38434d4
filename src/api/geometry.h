/* geometry.h - theo_geometry_run for a caller that has entered the session already, and the checks that it shares. */
#ifndef THEO_API_GEOMETRY_H
#define THEO_API_GEOMETRY_H

#include "api/model.h"
#include <theo/depth.h>

/* The caller's options, or the defaults, checked. */
theo_status theo_geometry_options_of(theo_geometry_options *out, const theo_geometry_options *given, theo_error *err);

/* Is it an image of sizes that can be measured, and of finite samples? */
theo_status theo_geometry_image_check(const theo_image *image, theo_error *err);

/* Patches that the options ask for. */
int theo_geometry_tokens(const theo_geometry_options *options, const theo_moge *network);

theo_status theo_geometry_entered(theo_session *session, const theo_image *image, const theo_geometry_options *options,
                                  theo_geometry **geometry, theo_error *err);

#endif
