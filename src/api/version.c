#include <theo/theo.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *theo_version(void) {
    return TEXT(THEO_VERSION_MAJOR) "." TEXT(THEO_VERSION_MINOR) "." TEXT(THEO_VERSION_PATCH);
}
