// Whether the server answers. Every request reports here; the page shows it, and whoever polls tries again by itself.

class Connection {
  isLost = $state(false);
  since = $state(0);

  lost(): void {
    if (this.isLost) return;
    this.isLost = true;
    this.since = Date.now() / 1000;
  }

  heard(): void {
    this.isLost = false;
  }
}

export const connection = new Connection();
