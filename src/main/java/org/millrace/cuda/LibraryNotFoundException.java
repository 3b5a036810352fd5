package org.millrace.cuda;

import org.millrace.MillraceException;

/**
 * A native library is nowhere: not a broken one, none. The message says where it was looked for and how to point at it.
 */
public final class LibraryNotFoundException extends MillraceException {

    private static final long serialVersionUID = 1L;

    LibraryNotFoundException(String message) {
        super(message);
    }
}
