/**
 * Names, creators, permissions and deletion of files in a directory that the processes of one user share. The content
 * of the files is defined by other packages.
 */
@NullMarked
package org.millrace.file;

import org.jspecify.annotations.NullMarked;
