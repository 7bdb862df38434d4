/* geometry.h - theo_geometry_run for a caller that has entered the session already. */
#ifndef THEO_API_GEOMETRY_H
#define THEO_API_GEOMETRY_H

#include "api/model.h"
#include <theo/depth.h>

/* The caller's options, or the defaults, checked. */
theo_status theo_geometry_options_of(theo_geometry_options *out, const theo_geometry_options *given, theo_error *err);

theo_status theo_geometry_entered(theo_session *session, const theo_image *image, const theo_geometry_options *options,
                                  theo_geometry **geometry, theo_error *err);

#endif
