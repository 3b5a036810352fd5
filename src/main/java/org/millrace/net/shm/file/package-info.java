/**
 * Files in a directory that processes of one user share: their names, who made them, who may open them, when they are
 * deleted; and memory in such a file. It knows nothing of frames.
 */
@NullMarked
package org.millrace.net.shm.file;

import org.jspecify.annotations.NullMarked;
