package org.millrace.plugin.loss;

import java.time.Duration;
import org.millrace.config.EnvironmentSettings;
import org.millrace.config.PluginSettings;

/**
 * What the user wants to happen when a peer is lost.
 *
 * @param ends        whether the process ends
 * @param grace       how long the program has to abort or destroy the communicator before
 * @param asyncErrors whether {@code ncclCommGetAsyncError} tells of it
 */
public record LossPolicy(boolean ends, Duration grace, boolean asyncErrors) {

    public static LossPolicy read(EnvironmentSettings settings) {
        return new LossPolicy(settings.get(PluginSettings.ON_LOSS), settings.get(PluginSettings.LOSS_GRACE),
                settings.get(PluginSettings.ASYNC_ERROR));
    }
}
