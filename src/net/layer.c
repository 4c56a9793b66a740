/* layer.c - layers on top of TCP connections, by name: registrations are permanent.
 *
 * LAYER-1  An entry below `count` never changes, so it is read without the lock.
 */
#include "net/layer.h"

#include "base/error.h"
#include "net/net.h"
#include "sync/lock.h"

#include <errno.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 15 };

static struct {
    struct lock lock;
    _Atomic uint32_t count;
    struct {
        char name[NAME_MAX_LENGTH + 1];
        CCConnLayer layer;
    } list[CC_CONN_LAYERS_MAX];
} layers;

void cc__layers_forget(void) {
    layers.lock = (struct lock){0};
}

static const CCConnLayer *find(const char *name, size_t length) {
    uint32_t count = cc__get_acquire(&layers.count); /* LAYER-1: pairs with cc_conn_layer */
    for (uint32_t i = 0; i < count; i++)
        if (strlen(layers.list[i].name) == length && memcmp(layers.list[i].name, name, length) == 0)
            return &layers.list[i].layer;
    return NULL;
}

const CCConnLayer *cc__layer_find(const char *text, const char **rest) {
    const char *end = strstr(text, "://");
    const CCConnLayer *layer = end != NULL ? find(text, (size_t)(end - text)) : NULL;
    if (layer != NULL) *rest = end + 3;
    return layer;
}

static bool good_name(const char *name) {
    if (name == NULL || name[0] == 0 || strlen(name) > NAME_MAX_LENGTH) return false;
    for (const char *at = name; *at != 0; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= '0' && *at <= '9')) return false;
    return strcmp(name, "tcp") != 0 && strcmp(name, "udp") != 0 && strcmp(name, "unix") != 0;
}

int cc_conn_layer(const char *name, const CCConnLayer *layer) {
    if (!good_name(name) || layer == NULL || cc__reserved_used(layer)) return EINVAL;
    int error = 0;
    cc__lock_take(&layers.lock);
    uint32_t count = cc__get(&layers.count);
    if (find(name, strlen(name)) != NULL) {
        error = EEXIST;
    } else if (count == CC_CONN_LAYERS_MAX) {
        error = ENOSPC;
    } else {
        strcpy(layers.list[count].name, name);
        layers.list[count].layer = *layer;
        cc__set_release(&layers.count, count + 1); /* LAYER-1: pairs with find */
    }
    cc__lock_release(&layers.lock);
    return error;
}
