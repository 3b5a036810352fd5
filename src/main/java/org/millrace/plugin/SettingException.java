package org.millrace.plugin;

import org.millrace.MillraceException;

/** The environment asks for something that is not possible. */
final class SettingException extends MillraceException {

    private static final long serialVersionUID = 1L;

    /** The message says which variable, what it is set to, and what is allowed. */
    SettingException(String message) {
        super(message);
    }
}
