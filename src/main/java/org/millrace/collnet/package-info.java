/**
 * Networks that reduce: what one can be asked for, and where others than Millrace's own come from. Millrace's own is in
 * {@code mesh}: ranks that reduce for each other.
 */
@NullMarked
package org.millrace.collnet;

import org.jspecify.annotations.NullMarked;
