// What the package gives to programs that import it. See index.d.ts.

import plane from './plane.cjs';

export const { ControlPlane, program, start, tell, withSkiff } = plane;
