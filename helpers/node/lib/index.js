// What the package gives to programs that import it. See index.d.ts.

import plane from './plane.cjs';

export const { Clock, ControlPlane, InjectedFault, program, start, tell, withFork, withSkiff } = plane;
