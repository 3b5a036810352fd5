package org.millrace.engine;

import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/**
 * Resources that were opened for a communicator. They are closed in the opposite order, both after a failed set-up and
 * when the communicator is closed.
 */
final class EngineResources implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(EngineResources.class);

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();

    synchronized <T extends AutoCloseable> T add(T resource) {
        opened.push(resource);
        return resource;
    }

    @Override
    public synchronized void close() {
        while (!opened.isEmpty()) {
            AutoCloseable resource = opened.pop();
            try {
                resource.close();
            } catch (Exception e) {
                LOG.warn("closing {}: {}", resource, e.getMessage());
            }
        }
    }
}
