package org.millrace.plugin;

import java.time.Duration;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * What the user wants to happen when a peer is lost.
 *
 * @param ends        whether the process ends
 * @param grace       how long the program has to abort or destroy the communicator before
 * @param asyncErrors whether {@code ncclCommGetAsyncError} tells of it
 */
record LossPolicy(boolean ends, Duration grace, boolean asyncErrors) {

    public static LossPolicy of(Configuration settings) {
        return new LossPolicy(settings.get(Settings.ON_LOSS), settings.get(Settings.LOSS_GRACE),
                settings.get(Settings.ASYNC_ERROR));
    }
}
