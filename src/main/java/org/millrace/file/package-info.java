/**
 * Files in a directory that processes of one user share: their names, their creators, their permissions, and their
 * deletion. The content of the files is defined by other packages.
 */
@NullMarked
package org.millrace.file;

import org.jspecify.annotations.NullMarked;
