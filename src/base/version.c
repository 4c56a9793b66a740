/* version.c - which version this is. */
#include <ccc/cc_base.h>

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

const char *cc_version(void) {
    return TEXT(CC_VERSION_MAJOR) "." TEXT(CC_VERSION_MINOR) "." TEXT(CC_VERSION_PATCH);
}
