package org.millrace.net.connection;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;

/** Data of a client without the secret, and its cost for the listener. */
public enum UnprovenClient {

    SILENT, HALF_OPEN, CLIENT_HELLO;

    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    /**
     * Bytes that the listener may allocate for a client without the secret: more than the JDK's channel and selection
     * key, and less than a buffer for a TLS record.
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
