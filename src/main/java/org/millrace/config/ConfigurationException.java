package org.millrace.config;

/**
 * One or more settings are unknown or not usable. The message has one line for each: its name, its value, where it came
 * from and what is allowed.
 */
public class ConfigurationException extends IllegalArgumentException {

    private static final long serialVersionUID = 1L;

    /**
     * A refusal.
     *
     * @param message one line for each setting that is refused
     */
    public ConfigurationException(String message) {
        super(message);
    }
}
