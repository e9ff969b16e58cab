// What the package gives to programs that import it. See index.d.ts.

import helper from './plane.cjs';

export const { Clock, ControlPlane, InjectedFault, endShared, plane, program, start, tell, withFork, withSkiff } = helper;
