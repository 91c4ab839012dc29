// Where the nodes of a drawing stand: layers from left to right, or from top to bottom where there is more room. Each holder is laid out by itself and then stands as one box in
// the layout around it, which keeps a loop together and is quick for large graphs.
import dagre from '@dagrejs/dagre';
import type { Drawing, DrawnNode } from './tree';

export interface Box {
  /** Relative to the node that holds it. */
  x: number;
  y: number;
  width: number;
  height: number;
}

const TASK = { width: 176, height: 48 };
const POINT = { width: 26, height: 26 };
/** Beyond so many nodes the best layers take seconds to find; good ones do. */
const MANY = 120;
const HEADER = 34;
const PADDING = 14;

const points = new Set(['Start', 'Success', 'Failed', 'Canceled', 'Fork', 'Join']);
export const isPoint = (kind: string) => points.has(kind);

export function layOut(drawing: Drawing, isTall = false): Map<string, Box> {
  const boxes = new Map<string, Box>();
  const children = new Map<string | null, DrawnNode[]>();
  const parents = new Map<string, string | null>();
  for (const drawn of drawing.nodes) {
    parents.set(drawn.node.id, drawn.parent);
    const siblings = children.get(drawn.parent);
    if (siblings) siblings.push(drawn);
    else children.set(drawn.parent, [drawn]);
  }

  /** Edges by the holder in which they are drawn, between the two nodes of it that hold their ends. */
  const edges = new Map<string | null, [string, string][]>();
  const lineOf = (id: string): string[] => {
    const line = [id];
    for (let up = parents.get(id) ?? null; up !== null; up = parents.get(up) ?? null) line.push(up);
    return line;
  };
  for (const edge of drawing.edges) {
    const from = lineOf(edge.from).reverse();
    const to = lineOf(edge.to).reverse();
    let depth = 0;
    while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth += 1;
    const [a, b] = [from[depth], to[depth]];
    if (a === undefined || b === undefined) continue;
    const holder = depth === 0 ? null : (from[depth - 1] ?? null);
    const list = edges.get(holder);
    if (list) list.push([a, b]);
    else edges.set(holder, [[a, b]]);
  }

  function place(holder: string | null): { width: number; height: number } {
    const graph = new dagre.graphlib.Graph();
    const members = children.get(holder) ?? [];
    const isMany = members.length > MANY;
    const ranker = isMany ? 'longest-path' : 'network-simplex';
    graph.setGraph({ rankdir: isTall ? 'TB' : 'LR', ranker, nodesep: 16, ranksep: 38, marginx: PADDING, marginy: PADDING });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const { node, inside, isFolded } of members) {
      const isOpen = inside > 0 && !isFolded;
      graph.setNode(node.id, { ...(isOpen ? place(node.id) : isPoint(node.kind) ? POINT : TASK) });
    }
    for (const [from, to] of edges.get(holder) ?? []) graph.setEdge(from, to);
    dagre.layout(graph, { disableOptimalOrderHeuristic: isMany });
    const top = holder === null ? 0 : HEADER;
    for (const { node } of members) {
      const at = graph.node(node.id);
      boxes.set(node.id, { x: at.x - at.width / 2, y: at.y - at.height / 2 + top, width: at.width, height: at.height });
    }
    const size = graph.graph();
    return { width: Math.ceil(Math.max(size.width ?? 0, TASK.width)), height: Math.ceil((size.height ?? 0) + top) };
  }
  place(null);
  return boxes;
}
