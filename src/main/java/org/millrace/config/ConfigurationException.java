package org.millrace.config;

/**
 * One or more settings are unknown or not usable. The message has one line for each such setting: its name, its value,
 * its origin and the allowed values.
 */
public class ConfigurationException extends IllegalArgumentException {

    private static final long serialVersionUID = 1L;

    /** @param message one line for each refused setting */
    public ConfigurationException(String message) {
        super(message);
    }
}
