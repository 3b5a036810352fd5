package org.millrace.net.connection;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;

/** Clients without the secret. Tests measure the memory that a client's data costs the listener. */
public enum UnprovenClient {

    SILENT, HALF_OPEN, CLIENT_HELLO;

    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    /**
     * Maximum number of bytes that the listener may allocate for a client without the secret. The JDK's channel and
     * selection key need less, and a buffer for a TLS record needs more.
     */
    public static final long MAX_BYTES = 16_384;

    /** Returns all bytes that the client sends. */
    public byte[] words() throws IOException, GeneralSecurityException {
        return switch (this) {
            case SILENT -> new byte[0];
            case HALF_OPEN -> new byte[] {'M', 'L', 'R', 'C'};
            case CLIENT_HELLO -> clientHello();
        };
    }

    private static byte[] clientHello() throws IOException, GeneralSecurityException {
        SSLEngine engine = SSLContext.getDefault().createSSLEngine();
        engine.setUseClientMode(true);
        ByteBuffer hello = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
        engine.wrap(ByteBuffer.allocate(0), hello);
        byte[] bytes = new byte[hello.flip().remaining()];
        hello.get(bytes);
        return bytes;
    }

    /** Returns the bytes that a thread has allocated so far. */
    public static long allocated(Thread thread) {
        return THREADS.getThreadAllocatedBytes(thread.threadId());
    }
}
