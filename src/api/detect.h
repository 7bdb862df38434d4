/* detect.h - theo_detect for a caller that has entered the session already. */
#ifndef THEO_API_DETECT_H
#define THEO_API_DETECT_H

#include "api/model.h"

/* Options of a call: the caller's, or those for the model; checked. */
theo_status theo_detect_options_of(theo_detect_options *out, const theo_detect_options *given, const theo_session *session,
                                   theo_error *err);

theo_status theo_detect_entered(theo_session *session, const theo_image *image, const theo_detect_options *options,
                                theo_keypoints **keypoints, theo_error *err);

#endif
