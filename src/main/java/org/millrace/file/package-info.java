/**
 * Files in a directory that processes of one user share: their names, who made them, who may open them, when they are
 * deleted. It knows nothing of what is in them.
 */
@NullMarked
package org.millrace.file;

import org.jspecify.annotations.NullMarked;
