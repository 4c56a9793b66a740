/* error.c - texts of errors. */
#include "tls.h"

#include <ccc/cc_local.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 320 };

static CCLocalKey key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void make_key(void) {
    (void)cc_local_key_create(&key, free);
}

int cc__tls_fail(int code, const char *format, ...) {
    int saved = errno;
    (void)pthread_once(&key_once, make_key);
    char *text = cc_local_get(key);
    if (text == NULL) {
        text = malloc(TEXT_SIZE);
        if (text != NULL && cc_local_set(key, text) != 0) {
            free(text);
            text = NULL;
        }
    }
    if (text != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, TEXT_SIZE, format, args);
        va_end(args);
    }
    errno = saved;
    return code;
}

const char *cc_tls_error(void) {
    (void)pthread_once(&key_once, make_key);
    const char *text = cc_local_get(key);
    return text != NULL ? text : "";
}

static int explain_ssl(int reason, const SSL *ssl, bool open, const char *host, char *text, size_t size) {
    switch (reason) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        (void)snprintf(text, size, "the certificate of %s is not good: %s", host,
                       X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
        return EKEYREJECTED;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        (void)snprintf(text, size, "%s has shown no certificate", host);
        return EKEYREJECTED;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        (void)snprintf(text, size,
                       open ? "the stream of %s has ended without a close notify: it was cut off"
                            : "%s has closed the connection during the handshake",
                       host);
        return ECONNRESET;
    default:
        break;
    }
    const char *words = ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));
    if (reason >= SSL_AD_REASON_OFFSET) {
        const char *alert = words != NULL ? strstr(words, "alert ") : NULL; /* "tlsv13 alert certificate required" */
        (void)snprintf(text, size, "%s has ended the connection with the alert \"%s\"", host,
                       alert != NULL ? alert + strlen("alert ") : "unknown");
        return EPROTO;
    }
    (void)snprintf(text, size, "%s with %s has failed: %s", open ? "TLS" : "the handshake", host,
                   words != NULL ? words : "for an unknown reason");
    return EPROTO;
}

int cc__tls_explain(const SSL *ssl, bool open, const char *host, char *text, size_t size) {
    unsigned long first = ERR_peek_error();
    const char *words = ERR_reason_error_string(first);
    int code = EPROTO;
    if (host == NULL) host = "the peer";
    if (ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE) {
        (void)snprintf(text, size, "there is no memory for TLS");
        code = ENOMEM;
    } else if (first != 0 && ERR_GET_LIB(first) == ERR_LIB_SSL) {
        code = explain_ssl(ERR_GET_REASON(first), ssl, open, host, text, size);
    } else {
        (void)snprintf(text, size, "TLS with %s has failed: %s", host, words != NULL ? words : "for an unknown reason");
    }
    ERR_clear_error();
    return code;
}
