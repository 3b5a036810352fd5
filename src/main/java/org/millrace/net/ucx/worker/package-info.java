/**
 * UCX's workers: each is what one polling thread drives, with all endpoints of that thread's connections. A worker is
 * one thread's at a time: the one that has the turn.
 */
@NullMarked
package org.millrace.net.ucx.worker;

import org.jspecify.annotations.NullMarked;
