package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.nio.channels.ServerSocketChannel;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/**
 * Where rank 0 waits for the others.
 *
 * @param listener bound and listening
 * @param secret   what the others must know
 * @param withdraw removes what leads the others here; runs once
 */
record BootstrapListener(ServerSocketChannel listener, Secret secret, Runnable withdraw) implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(BootstrapListener.class);

    /** Nobody can come any more. */
    @Override
    public void close() {
        withdraw.run();
        try {
            listener.close();
        } catch (IOException e) {
            LOG.debug("closing the listening socket of rank 0", e);
        }
    }
}
