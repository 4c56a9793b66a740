"""by_tlslite.py PORT - a client that shares no line with OpenSSL (tlslite-ng) asks the server for a page, by every version and cipher that both have."""
import socket
import sys

from tlslite import HandshakeSettings, TLSConnection

for version in (3, 3), (3, 4):
    for cipher in "aes128gcm", "aes256gcm", "chacha20-poly1305":
        with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
            tls = TLSConnection(s)
            settings = HandshakeSettings()
            settings.minVersion = settings.maxVersion = version
            settings.cipherNames = [cipher]
            tls.handshakeClientCert(settings=settings, serverName="localhost", alpn=[b"http/1.1"])
            tls.write(b"GET /100000 HTTP/1.0\r\n\r\n")
            answer = b""
            while True:
                part = tls.read(min=1, max=20000)
                if not part:
                    break
                answer += part
            assert answer.endswith(b"\0" * 100000) and tls.session.appProto == b"http/1.1", (version, cipher)
