/* curl_easy.c - curl's blocking easy interface on the threads of a pool: the smallest change to a program that uses it.
 *
 *   curl_easy http://127.0.0.1:8080/
 */
#include "recipe.h"

#include <curl/curl.h>

static const char *where;

static size_t count_bytes(char *bytes, size_t size, size_t count, void *total) {
    (void)bytes;
    *(size_t *)total += size * count;
    return size * count;
}

/* As curl_easy_perform. A call that has started is waited for even if the fiber is cancelled: set a timeout in curl.
 * */
CC_BLOCKING(perform, { CURL *handle; }) {
    return (void *)(intptr_t)curl_easy_perform(self->handle);
}

static bool fetch(int i) {
    size_t bytes = 0;
    void *code = (void *)(intptr_t)CURLE_ABORTED_BY_CALLBACK;
    CURL *handle = curl_easy_init();
    (void)i;
    if (handle == NULL) return false;
    curl_easy_setopt(handle, CURLOPT_URL, where);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &bytes);
    curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT, 60L);
    int error = CC_BLOCKING_CALL(perform, &code, .handle = handle);
    bool good = error == 0 && (intptr_t)code == CURLE_OK && bytes > 0;
    if (!good) fprintf(stderr, "curl: %s\n", curl_easy_strerror((CURLcode)(intptr_t)code));
    curl_easy_cleanup(handle);
    return good;
}

int main(int argc, char **argv) {
    where = argc > 1 ? argv[1] : "http://127.0.0.1/";
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) return 1;
    int status = recipe_run(fetch);
    curl_global_cleanup();
    return status;
}
