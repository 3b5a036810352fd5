package org.millrace.plugin.loss;

import java.time.Duration;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * Reaction to the loss of a peer, set by the user.
 *
 * @param ends        whether the process ends after the loss
 * @param grace       time in which the program can abort or destroy the communicator before the process ends
 * @param asyncErrors whether {@code ncclCommGetAsyncError} reports the loss
 */
public record LossPolicy(boolean ends, Duration grace, boolean asyncErrors) {

    public static LossPolicy of(Configuration settings) {
        return new LossPolicy(settings.get(Settings.ON_LOSS), settings.get(Settings.LOSS_GRACE),
                settings.get(Settings.ASYNC_ERROR));
    }
}
