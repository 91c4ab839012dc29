//! Who has a key. What stands for a key here is the name of its holder.

use async_trait::async_trait;
use pyoco_core::access::Role;
use pyoco_core::ids::TenantId;
use pyoco_gateway::{Access, Admitted, NotAdmitted};

/// Ann and her colleagues, and Bob of another tenant.
#[derive(Debug, Clone, Copy)]
pub struct Staff;

#[async_trait]
impl Access for Staff {
    async fn admit(&self, secret: Option<&str>) -> Result<Admitted, NotAdmitted> {
        let (tenant, role) = match secret {
            None => return Err(NotAdmitted::NothingShown),
            Some("ann" | "amy") => ("anns-team", Role::Submit),
            Some("ann-reads") => ("anns-team", Role::Read),
            Some("ann-rules") => ("anns-team", Role::Admin),
            Some("bob") => ("bobs-team", Role::Submit),
            Some("bob-rules") => ("bobs-team", Role::Admin),
            Some(_) => return Err(NotAdmitted::Wrong),
        };
        let tenant = Some(TenantId::new(tenant).unwrap());
        Ok(Admitted { tenant, key: secret.map(str::to_owned), role })
    }
}
