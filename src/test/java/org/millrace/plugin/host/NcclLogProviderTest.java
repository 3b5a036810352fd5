package org.millrace.plugin.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.io.IOException;
import java.util.List;
import org.apache.logging.log4j.spi.ExtendedLogger;
import org.apache.logging.log4j.util.LoaderUtil;
import org.junit.jupiter.api.Test;

class NcclLogProviderTest {

    private final NcclLogProvider.Factory factory = new NcclLogProvider.Factory();

    @Test
    void linesComeOutOfNcclsLoggerInOneLineEach() {
        CapturedLog.begin();
        ExtendedLogger logger = factory.getContext("", null, null, true).getLogger("org.millrace.net.Somewhere");
        logger.warn("100% of {} parts", 3);
        logger.info("two\nlines");
        logger.error("failed", new IllegalStateException("outer", new IOException("inner")));
        logger.debug("unsaid");
        assertFalse(logger.isDebugEnabled());
        assertEquals(List.of("2 NET/Millrace: Somewhere: 100% of 3 parts", "3 NET/Millrace: Somewhere: two | lines",
                "2 NET/Millrace: Somewhere: failed: outer: inner"), CapturedLog.lines());
    }

    /**
     * Log4j must be able to create the provider by its name, from another package. Otherwise the plugin would log
     * nothing.
     */
    @Test
    void log4jCanMakeIt() throws ReflectiveOperationException {
        assertInstanceOf(NcclLogProvider.class, LoaderUtil.newInstanceOf(NcclLogProvider.class.getName()));
    }

    @Test
    void aNameHasOneLogger() {
        var context = factory.getContext("", null, null, false);
        assertSame(context.getLogger("a"), context.getLogger("a", null));
    }
}
