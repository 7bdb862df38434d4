/* clock.h - monotonic wall time. */
#ifndef THEO_BASE_CLOCK_H
#define THEO_BASE_CLOCK_H

/* Milliseconds since some fixed moment. */
double theo_clock_ms(void);

#endif
